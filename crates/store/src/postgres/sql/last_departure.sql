select heartbeat_at from everbell.departures
