package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/image"
	"podstarter/condor/startd"
	"podstarter/internal/buildinfo"
	"podstarter/starter/activation"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
	"podstarter/starter/submitside"
)

// preflightTime bounds the look at the pod. The startd does nothing else while
// it waits for its starter's abilities, and it waits without a limit.
const preflightTime = 5 * time.Second

// advertise prints what jobs can expect here, for the slot ad. It promises
// nothing that this starter cannot keep: HTCondor can run the job elsewhere.
func advertise(ctx context.Context, out io.Writer, cfg *config.Config, log *slog.Logger) int {
	ad := classads.NewAd()
	ad.SetString("CondorVersion", condorVersion(cfg))
	ad.SetBool("IsDaemonCore", true)
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, preflightTime)
	defer cancel()
	var made calls
	set, err := preflight(ctx, cfg, &made, log)
	if err != nil {
		log.Error("This execution point takes no jobs until its configuration is corrected:")
		for _, line := range failure.Lines(err) {
			log.Error(line)
		}
		ad.SetBool("HasPodStarter", false)
		ad.SetString("PodStarterOfflineReason", failure.OneLine(err))
	} else {
		abilities(ad, set)
		tryRuntime(whole, ad, set, log)
		tryJava(whole, ad, set, cfg, log)
		tidy(ctx, set, cfg, &made, log)
		findGPUs(whole, set, cfg, &made, log)
		urlAbilities(whole, ad, hostOf(set), set, cfg, startd.ScrubEnv(os.Environ()), log)
	}
	if set.PrivateDir != "" {
		noteCheck(set, err, made.soFar(), log)
	}
	if err := startd.WriteAbilities(out, ad); err != nil {
		log.Error("Cannot tell the startd what this starter can do", "error", err)
		return activation.ExitGeneral
	}
	return activation.ExitNormal
}

// tidy ends what starters of an earlier pilot left, and publishes what is known
// of the pod. It runs here because a new startd asks for the abilities as root,
// before it offers a slot, and waits for the answer. A reconfigured startd asks
// again; containers with a job are leased then.
func tidy(ctx context.Context, set settings.Settings, cfg *config.Config, made *calls, log *slog.Logger) {
	if set.Backend == settings.BackendPod {
		backend, err := newPodBackend(ctx, set, cfg, made, log)
		if err == nil {
			err = backend.ResetLeftovers(ctx)
		}
		if err != nil {
			log.Warn("Failed to end what an earlier starter left; the next job's binding ends it", "error", failure.OneLine(err))
		}
	}
	if err := podOf(set).Publish(); err != nil {
		log.Warn("Failed to tell the monitor the pod's state", "error", failure.OneLine(err))
	}
}

// preflight finds out what is wrong with the configuration before a job does.
func preflight(ctx context.Context, cfg *config.Config, made *calls, log *slog.Logger) (settings.Settings, error) {
	set, err := settings.Read(cfg)
	for _, remark := range set.Remarks() {
		log.Warn(remark)
	}
	if err != nil {
		return set, err
	}
	backend, err := newBackend(ctx, set, cfg, made, log)
	if err != nil {
		return set, err
	}
	warnings, err := backend.Check(ctx)
	if set.Backend == settings.BackendPod {
		if w := settings.SlotsBeyondContainers(cfg, len(set.Containers), set.Spares); w != "" {
			warnings = append(warnings, w)
		}
	}
	if w := set.BesideStarter(); w != "" {
		warnings = append(warnings, w)
	}
	for _, w := range warnings {
		log.Warn(w)
	}
	return set, err
}

// abilities are what this starter can do (starter_v61_main.cpp:printClassAd
// lists those of stock).
func abilities(ad *classads.Ad, set settings.Settings) {
	for _, name := range []string{"HasFileTransfer", "HasPerFileEncryption", "HasPodStarter",
		"HasReconnect", "HasTransferInputRemaps", "HasOsUser", "HasJobDeferral", "HasSelfCheckpointTransfers", "HasSshd"} {
		ad.SetBool(name, true)
	}
	// False has the startd take only jobs that want no network (want_job_networking = False; ResAttributes.cpp).
	ad.SetBool("HasJobNetworking", !set.Condor.NoNetwork)
	ad.SetString("PodStarterVersion", buildinfo.Version())
	ad.SetString("PodStarterBackend", set.Backend)
	if set.CommonFiles.Offered {
		ad.SetInt("HasCommonFilesTransfer", submitside.CommonFilesVersion)
		ad.SetString("MappingMethod", set.CommonFiles.Method())
	}
	if set.Backend == settings.BackendPod {
		imageAbilities(ad, set.Images)
	}
}

// imageAbilities are the promises to jobs that name an image. condor_submit
// makes each job ask for what its image needs (submit_utils.cpp:
// SetRequirements); only a site that has a map for files and directories, or can copy
// them into containers, can promise those. Who asks for Apptainer by its older name has
// such an image.
func imageAbilities(ad *classads.Ad, images *image.Site) {
	if policy := images.Policy(); policy != "" {
		ad.SetString("PodStarterImagePolicy", string(policy))
		if policy == image.PolicyNever {
			return
		}
	}
	names := []string{"HasContainer", "HasDocker", "HasDockerURL"}
	if images.HasMap() || images.HasCarrier() {
		names = append(names, "HasSIF", "HasSandboxImage")
	}
	if images.HasCarrier() {
		names = append(names, "HasSingularity", "HAS_SINGULARITY")
	}
	for _, name := range names {
		ad.SetBool(name, true)
	}
	// Names of the OSPool and of GlideinWMS.
	ad.SetBool("SINGULARITY_CAN_USE_REGISTRY", true)
	ad.SetBool("SINGULARITY_CAN_USE_SIF", images.HasCarrier())
	ad.SetString("DockerVersion", "podstarter "+buildinfo.Version())
}

// condorVersion is HTCondor's version in the form that its daemons compare.
// The startd does not publish it; it publishes its own.
func condorVersion(cfg *config.Config) string {
	return fmt.Sprintf("$CondorVersion: %s podstarter %s $", cfg.String("CONDOR_VERSION", "0.0.0"), buildinfo.Version())
}

func platform() string {
	return fmt.Sprintf("$CondorPlatform: %s_%s $", runtime.GOARCH, runtime.GOOS)
}
