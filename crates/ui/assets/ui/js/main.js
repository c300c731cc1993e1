startTimes();
startDialogs();
startForms();
startKeys();
startLive();
