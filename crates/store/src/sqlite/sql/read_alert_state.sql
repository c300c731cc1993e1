select generation, looked_at from everbell_alert_state
