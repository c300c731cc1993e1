select releases from everbell.apps where source = $1 and app = $2
