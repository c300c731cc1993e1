update everbell.alert_state set generation = generation + 1
