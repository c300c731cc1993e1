startTimes();
startDialogs();
startForms();
startKeys();
startPalette();
startLive();
