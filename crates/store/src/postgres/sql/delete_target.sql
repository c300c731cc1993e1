delete from everbell.targets where label = $1
