select releases from everbell_apps where source = ?1 and app = ?2
