update requests set status = $2, body = $3 where key = $1 and status is null
