startTimes();
startDialogs();
startForms();
startKeys();
startPalette();
startHover();
startLive();
