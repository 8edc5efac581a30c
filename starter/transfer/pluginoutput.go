package transfer

import (
	"context"
	"log/slog"

	"podstarter/condor/daemonlog"
	"podstarter/starter/settings"
)

// pluginOutput logs what plugins wrote, where the administrator wants it
// (file_transfer.cpp: LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS, nowhere unless it is
// set, and LOG_FILETRANSFER_PLUGIN_STDOUT_ON_FAILURE).
func pluginOutput(knobs settings.Transfer, log *slog.Logger) func(success bool, line string) {
	lists := map[bool]string{
		true:  knobs.LogSuccess,
		false: knobs.LogFailure,
	}
	return func(success bool, line string) {
		if level, category, ok := daemonlog.ParsePlace(lists[success]); ok {
			log.Log(context.Background(), level, line, daemonlog.In(category))
		}
	}
}
