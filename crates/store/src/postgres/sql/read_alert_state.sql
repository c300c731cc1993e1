select generation, looked_at from everbell.alert_state
