update everbell_apps set releases = ?3 where source = ?1 and app = ?2
