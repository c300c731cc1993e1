//! Where jobs, timers and runs live. The stores come with a later release; the contract that they will keep is
//! [`everbell_core::store`].
