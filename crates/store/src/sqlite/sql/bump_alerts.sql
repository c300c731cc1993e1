update everbell_alert_state set generation = generation + 1
