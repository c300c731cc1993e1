update everbell_freezes set ended_at = ?2, ended_by = ?3 where id = ?1
