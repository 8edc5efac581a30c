package job

import (
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/condor/config"
)

// Services returns the names of the OAuth services whose tokens the job needs,
// without duplicates; ok is false if the job's ad does not mention tokens
// (condor_starter.V6.1/jic_shadow.cpp:initUserCredentials,
// condor_utils/cred_dir.cpp:PrepareCredDir).
func Services(ad *classads.Ad) (names []string, ok bool) {
	text, err := ad.GetString("OAuthServicesNeeded")
	if err != nil {
		return nil, false
	}
	for _, name := range config.Split(text) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, true
}

// ProxyName returns the file name of the job's X.509 proxy in the sandbox; "" if
// the job has none (jic_shadow.cpp:updateX509Proxy).
func ProxyName(ad *classads.Ad) string {
	switch name := basename(ad.StringOr("x509userproxy", "")); name {
	case ".", "..":
		return ""
	default:
		return name
	}
}

// ProxyExpiry returns when a delegated X.509 proxy shall expire; the zero time
// means with the original proxy
// (condor_utils/file_transfer.cpp:GetDesiredDelegatedJobCredentialExpiration).
func ProxyExpiry(ad *classads.Ad, k Knobs, now time.Time) (time.Time, error) {
	var problems *multierror.Error
	delegate, err := k.Bool("DELEGATE_JOB_GSI_CREDENTIALS", true)
	if err != nil {
		problems = multierror.Append(problems, err)
	}
	if !delegate {
		return time.Time{}, problems.ErrorOrNil()
	}
	lifetime := ad.IntOr("DelegateJobGSICredentialsLifetime", -1)
	if lifetime < 0 {
		const day = 24 * 60 * 60
		if lifetime, err = k.Int("DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME", day); err != nil {
			problems, lifetime = multierror.Append(problems, err), day
		}
	}
	const most = 100 * 365 * 24 * 60 * 60 // far below the largest time.Duration
	if lifetime <= 0 || lifetime > most {
		return time.Time{}, problems.ErrorOrNil()
	}
	return now.Add(time.Duration(lifetime) * time.Second), problems.ErrorOrNil()
}
