select fingerprint, status, body, deed from requests where key = $1 and created_at >= $2
