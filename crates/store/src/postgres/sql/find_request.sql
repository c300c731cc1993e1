select fingerprint, status, body, deed from everbell.requests where key = $1 and created_at >= $2
