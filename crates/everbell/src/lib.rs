//! The library that people embed: builder, handlers, client, engine, testing. It comes with a later release; what it
//! will decide is in [`everbell_core`] already.
