select fingerprint, status, body, deed from everbell_requests where key = ?1 and created_at >= ?2
