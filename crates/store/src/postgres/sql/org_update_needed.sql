select exists (select from everbell.orgs where waiting) or exists (select from everbell.sweeps) or exists (select from everbell.orgs where deleted) as needed
