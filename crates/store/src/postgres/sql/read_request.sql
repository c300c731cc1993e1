select fingerprint, status, body from requests where key = $1
