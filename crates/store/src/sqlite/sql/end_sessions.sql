delete from everbell_sessions where (?1 is null or id = ?1) and (?2 is null or actor = ?2)
