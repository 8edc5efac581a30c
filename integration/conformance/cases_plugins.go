package conformance

import (
	"podstarter/integration/harness"
)

// fetches is a job whose inputs include URLs. It prints what has arrived, and the
// case notes what the access point keeps about the runs of plugins.
func fetches(c Case, inputs, more string) Case {
	c.Submit = "executable = job\noutput = out\ntransfer_input_files = " + inputs + "\n" + more
	c.Files = append(c.Files, Script("job", `for f in *; do case $f in job) ;; *) echo "$f: $(cat "$f")"; stat -c '%a %h %F' "$f";; esac; done; ls -A | grep -e '\.in$' -e '\.out$'; exit 0`))
	c.Steps = append(c.Steps, Ends(), transferRecords, transferHistory)
	return c
}

// fails is a case of a job that is put on hold.
func fails(c Case, inputs string) Case {
	c = fetches(c, inputs, shortLease)
	c.Steps = []Step{Event(harness.EventHeld, 1), transferRecords, transferHistory}
	return c
}

// withNewStarter is for cases that show what the starter of 23.9 does otherwise: it
// leaves .in and .out in the sandbox, where the job finds them, gives other subcodes,
// takes none of a plugin's attributes if one line is none, hands plugins directories,
// waits on its slot after output that failed, lets no executable come from a URL, and
// looks at no manifest of a checkpoint that comes back.
var withNewStarter = []string{"25.14+*"}

// withRoot is for cases of jobs that match no slot of a pilot without root: it takes
// no plugins from jobs, since they would run as the pilot.
var withRoot = []string{"shared", "unshared"}

// firstTime are inputs that are others when the job is tried again.
func firstTime(first, then string) string {
	return "\nMY.TransferInput = ifThenElse(NumShadowStarts =?= 1, \"" + first + "\", \"" + then + "\")\n"
}

// goesBack is a case of a job that goes back to the queue and runs at its second try.
func goesBack(c Case, first, then, more string) Case {
	c = fetches(c, "", more+firstTime(first, then))
	return c
}

var pluginsCases = []Case{
	fetches(Case{Name: "plugin", Versions: withNewStarter, Shows: "two URLs fetched by one plugin, and a file from the submit side",
		Files: []harness.File{{Name: "plain", Content: []byte("plain\n")}}},
		"case://ok/one, plain, case://ok/two", ""),
	fetches(Case{Name: "plugin-told", Versions: withNewStarter, Shows: "what a plugin gets: directory, arguments, variables and descriptors",
		Files: []harness.File{{Name: "plain", Content: []byte("plain\n")}}},
		"case://told/told, plain", "environment = \"CASE_OF=mine case_too=two CASES=no\"\n+PluginData = \"data of all\"\n+case_PluginData = \"data of one\"\n+other_PluginData = 2"),
	fetches(Case{Name: "plugin-suffix", Versions: withNewStarter, Shows: "the last part of a scheme is the method, in any case"},
		"some+case://ok/one", ""),
	fetches(Case{Name: "plugin-unsaid", Versions: withNewStarter, Shows: "a plugin that succeeds and reports a failure: its exit status decides"},
		"case://unsaid/one", ""),
	fails(Case{Name: "plugin-exit", Shows: "a plugin that fails with an exit status and says why"}, "case://exit/one?secret=1"),
	fails(Case{Name: "plugin-exit-two", Shows: "a plugin that fails for two of three files"}, "case://exit/one, case://ok/two, case://exit/three"),
	fails(Case{Name: "plugin-exit-unsaid", Shows: "a plugin that fails and reports no failure"}, "case://exit-unsaid/one"),
	fails(Case{Name: "plugin-signal", Versions: withNewStarter, Shows: "a plugin that dies of a signal after its report"}, "case://signal/one"),
	fails(Case{Name: "plugin-signal-silent", Versions: withNewStarter, Shows: "a plugin that dies of a signal before its report"}, "case://signal-silent/one"),
	fails(Case{Name: "plugin-slow", Versions: withNewStarter, Shows: "a plugin that takes longer than MAX_FILE_TRANSFER_PLUGIN_LIFETIME"}, "case://slow/one"),
	fails(Case{Name: "plugin-several-exit", Versions: withNewStarter, Shows: "three plugins of which the first two fail"},
		"keep://exit3/one, case://exit/two, case://ok/three, $(WEB)/urls/empty"),
	fails(Case{Name: "plugin-several-unsaid", Versions: withNewStarter, Shows: "a plugin that reports a failure and succeeds, before one that fails and reports none"},
		"keep://lies/one, case://exit-unsaid/two"),
	fails(Case{Name: "plugin-several-first", Versions: withNewStarter, Shows: "a plugin that dies before another that succeeds"},
		"keep://signal/one, case://ok/two"),
	fails(Case{Name: "plugin-input-gone", Shows: "a missing file beside a URL, which is then not fetched",
		Files: []harness.File{{Name: "gone"}}}, "case://exit/one, gone\nhold = True").after(Shell("rm gone"), Tool("condor_release")),
	goesBack(Case{Name: "plugin-malformed", Versions: withNewStarter, Shows: "a plugin whose report is not an ad"}, "case://malformed/one", "case://ok/one", ""),
	goesBack(Case{Name: "plugin-silent", Versions: withNewStarter, Shows: "a plugin that reports nothing"}, "case://silent/one", "case://ok/one", ""),
	goesBack(Case{Name: "plugin-missing", Versions: withNewStarter, Shows: "a URL whose method no plugin has"}, "nobodys://ok/one", "case://ok/one", ""),

	fetches(Case{Name: "plugin-own", Versions: withNewStarter, Pools: withRoot, Shows: "a plugin that the job brings", Files: []harness.File{ownPlugin}},
		"mine://ok/one, case://ok/two", "transfer_plugins = mine=own.sh\n"),
	fetches(Case{Name: "plugin-own-instead", Versions: withNewStarter, Pools: withRoot, Shows: "a plugin that the job brings, for a method that the site has, too", Files: []harness.File{ownPlugin}},
		"case://ok/one", "transfer_plugins = case=own.sh\n"),
	fetches(Case{Name: "plugin-own-ignored", Versions: withNewStarter, Pools: withRoot, Shows: "a plugin that the job brings and the site ignores", Files: []harness.File{ownPlugin}},
		"case://ok/one", "transfer_plugins = case=own.sh\n+OwnPlugins = \"ignored\"\n"),
	goesBack(Case{Name: "plugin-own-refused", Versions: withNewStarter, Pools: withRoot, Shows: "a plugin that the job brings and the site does not allow, at its first try", Files: []harness.File{ownPlugin}},
		"case://ok/one", "plain://ok/one", "transfer_plugins = case=own.sh\n+OwnPlugins = \"refused\"\n"),

	fetches(Case{Name: "plugin-one", Shows: "a plugin that moves one file, by the older protocol"}, "plain://ok/one, plain://ok/two", ""),
	fails(Case{Name: "plugin-one-exit", Shows: "such a plugin that fails with an exit status and says why"}, "plain://exit/one"),
	fails(Case{Name: "plugin-one-of-several", Versions: withNewStarter, Shows: "such a plugin that fails for one of three files, and a plugin for lists",
		Files: []harness.File{{Name: "plain", Content: []byte("plain\n")}}},
		"plain://ok/one, plain://exit/two, plain://ok/three, case://ok/four, plain"),
	goesBack(Case{Name: "plugin-missing-one", Versions: withNewStarter, Shows: "a URL whose method no plugin has, beside others"},
		"nobodys://ok/one, case://ok/two, plain://ok/three", "case://ok/one", ""),
	fails(Case{Name: "plugin-one-silent", Versions: withNewStarter, Shows: "such a plugin that fails and says nothing"}, "plain://exit-silent/one"),
}

// after puts steps before those that the case has.
func (c Case) after(steps ...Step) Case {
	c.Steps = append(steps, c.Steps...)
	return c
}

// manyPlugin accepts lists of files. The host of a URL says what it does.
const manyPlugin = `if [ "$1" = -classad ]; then cat <<END
# what it is
MultipleFileSupport = true
PluginVersion = "1.0"
PluginType = "FileTransfer"
SupportedMethods = "case"
StartdAttrs = "CasePluginLevel, CasePluginWord"
CasePluginLevel = 3
CasePluginWord = "on"
case_proxy = "cache.example.org"
END
exit; fi
args=$*
while [ $# -gt 0 ]; do case $1 in -infile) in=$2; shift;; -outfile) out=$2; shift;; esac; shift; done
grep -o 'Url = "[^"]*"' "$in" | cut -d'"' -f2 >.urls
grep -o 'LocalFileName = "[^"]*"' "$in" | cut -d'"' -f2 >.names
code=0
report() { echo "[ TransferUrl = \"$url\"; TransferFileName = \"${name##*/}\"; TransferProtocol = \"case\"; TransferType = \"download\"; TransferFileBytes = $1; TransferTotalBytes = $1; TransferStartTime = 1; TransferEndTime = 2; ConnectionTimeSeconds = 1.5; Extra = 1; $2 ]" >>.report; }
exec 3<.urls 4<.names
while read -r url <&3 && read -r name <&4; do
  case $url in
  *://ok/*) echo "from ${url##*/}" >"$name"; report 7 'TransferSuccess = true';;
  *://told/*) tell >"$name"; report 9 'TransferSuccess = true';;
  *://unsaid/*) echo half >"$name"; report 1 'TransferSuccess = false; TransferError = "it does not matter"';;
  *://exit/*) report 0 'TransferSuccess = false; TransferError = "no such thing"; TransferErrorData = { [ ErrorType = "Resolution"; ErrorCode = 5; Retryable = true; Other = 1 ] }'; code=11;;
  *://exit-unsaid/*) report 0 'TransferSuccess = true'; code=12;;
  *://signal/*) report 0 'TransferSuccess = false; TransferError = "not yet"'; code=signal;;
  *://signal-silent/*) kill -9 $$;;
  *://slow/*) sleep 600;;
  *://malformed/*) echo '[ TransferSuccess = ; ]' >.report;;
  *://silent/*) : ;;
  esac
done
exec 3<&- 4<&-
[ -f .report ] && cat .report >"$out"
rm -f .report .urls .names
[ $code = signal ] && kill -15 $$
exit $code
`

// tellPlugin goes before it and prints what a plugin sees, without what is particular
// to the run.
const tellPlugin = `scratch=$PWD
tell() {
echo "$args" | sed "s,$scratch,SCRATCH,g"
[ "$(id -u)" = 0 ] && echo root
[ "$(id -u)" = "$(stat -c %u .)" ] && echo as the owner of the sandbox
[ "$PWD" = "${_CONDOR_JOB_AD%/.job.ad}" ] && echo in the sandbox
umask
wc -c <"$out"
stat -L -c %n:%F /proc/self/fd/0 2>/dev/null
ls /proc/self/fd | grep -c -v -e '^[0-4]$'
[ -f "$_CONDOR_JOB_AD" ] && [ -f "$_CONDOR_MACHINE_AD" ] && echo both ads
cat plain
env | sed -n 's/^\(_CONDOR[A-Za-z_]*\|X509[A-Z_]*\)=.*/variable \1/p' | grep -v -e ANCESTOR -e _CONDOR_EXECUTE | sort
env | grep -i '^cases\{0,1\}[_=]' | sort
tr -d '\n' <"$in" | sed "s,$scratch,SCRATCH,g" | grep -o '[A-Za-z_]* = [^;]*' | sed 's/ *\]*$//' | sort
}
`

// onePlugin moves one file.
const onePlugin = `if [ "$1" = -classad ]; then
echo 'PluginVersion = "1.0"'; echo 'PluginType = "FileTransfer"'; echo 'SupportedMethods = "plain"'
exit; fi
case $1 in
*://ok/*) echo "one: ${1##*/}" >"$2"; echo "TransferUrl = \"$1\""; echo 'TransferSuccess = true'; echo 'TransferProtocol = "plain"'; echo 'TransferTotalBytes = 9'; echo complaint >&2;;
*://exit/*) echo "TransferUrl = \"$1\""; echo 'TransferSuccess = false'; echo 'TransferError = "no such thing"'; exit 7;;
*://exit-silent/*) exit 255;;
esac
`

// ownPlugin is a plugin that a job brings.
var ownPlugin = Script("own.sh", `while [ $# -gt 0 ]; do case $1 in -infile) in=$2; shift;; -outfile) out=$2; shift;; esac; shift; done
[ "${in##*/}" = .own.sh.in ] || exit 1
name=$(grep -o 'LocalFileName = "[^"]*"' "$in" | cut -d'"' -f2)
echo "by the job's own plugin" >"$name"
echo '[ TransferUrl = "mine://ok/one"; TransferSuccess = true; TransferProtocol = "mine"; TransferTotalBytes = 24 ]' >"$out"
`)

// pluginsSetup adds the plugins to those of the site. Other tests ask the plugins
// written in Python about themselves, as stock does for each job: that takes seconds.
var pluginsSetup = Setup{
	Execute: `FILETRANSFER_PLUGINS = $(LIBEXEC)/curl_plugin, ` + programs + `/plugins/case_plugin.sh, ` + programs + `/plugins/plain_plugin.sh
MAX_FILE_TRANSFER_PLUGIN_LIFETIME = 20
STARTER_DISABLE_USER_SUPPLIED_TRANSFER_PLUGINS = ifThenElse(TARGET.OwnPlugins =?= "ignored", 2, ifThenElse(TARGET.OwnPlugins =?= "refused", 1, 0))
`,
	Programs: []harness.File{
		Script("plugins/case_plugin.sh", tellPlugin+manyPlugin),
		Script("plugins/plain_plugin.sh", onePlugin),
	},
}
