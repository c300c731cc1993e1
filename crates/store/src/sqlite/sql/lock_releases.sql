-- There is one writer, so the row stays as it is until the commit.
select releases from everbell_apps where source = ?1 and app = ?2
