-- Which process an instance is, so that another one on the same machine can tell that it is gone. Older releases write none.
alter table everbell_instances add column process text;
