update everbell.alert_state set generation = generation + 1, looked_at = $2 where generation = $1
