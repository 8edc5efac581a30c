package payloadrun

// OwnProcesses tells whether the job is to have a PID namespace: jobs in images have what the runtime of images gives them.
func (j *Job) OwnProcesses() bool { return j.Settings.OwnProcesses() && j.Contained == nil }
