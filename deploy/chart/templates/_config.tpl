{{/* HTCondor's configuration, by file. Those that need no value are files of deploy/: config/ has links to them. */}}
{{- define "chartConfig" -}}
{{- $v := .Values }}
60-glidein.conf: |
  {{- .Files.Get "config/60-glidein.conf" | nindent 2 }}
{{- if or (gt (int $v.payload.slots) 1) $v.payload.partitionable }}
65-slots.conf: |
  POD_STARTER_CONTAINERS = {{ include "payloads" . }}
  {{- if $v.payload.partitionable }}
  SLOT_TYPE_1 = 100%
  SLOT_TYPE_1_PARTITIONABLE = True
  {{- else }}
  NUM_SLOTS = {{ $v.payload.slots }}
  NUM_SLOTS_TYPE_1 = {{ $v.payload.slots }}
  {{- end }}
{{- end }}
70-site.conf: |
  CONDOR_HOST = {{ required "pool.collector: name the pool's central manager" $v.pool.collector }}
  UID_DOMAIN = {{ required "pool.domain: name the UID_DOMAIN of the pool's central manager" $v.pool.domain }}
{{- if $v.payload.spares }}
70-spares.conf: |
  POD_STARTER_CONTAINERS = {{ include "payloads" . }}
  POD_STARTER_SPARES = {{ $v.payload.spares }}
{{- end }}
{{- if or (eq $v.kind "job") $v.lifetime.idle $v.lifetime.accept $v.lifetime.retire }}
70-lifetime.conf: |
  POD_STARTER_IDLE_TIME = {{ kindIs "invalid" $v.lifetime.idle | ternary (eq $v.kind "job" | ternary 1200 0) $v.lifetime.idle | int64 }}
  {{- with $v.lifetime.accept }}
  POD_STARTER_ACCEPT_TIME = {{ int64 . }}
  {{- end }}
  {{- with $v.lifetime.retire }}
  POD_STARTER_RETIRE_TIME = {{ int64 . }}
  {{- end }}
{{- end }}
{{- if $v.resize.enabled }}
70-resize.conf: |
  {{- .Files.Get "config/70-resize.conf" | nindent 2 }}
{{- end }}
{{- if $v.gpus.count }}
72-gpus.conf: |
  POD_STARTER_GPU_CONTAINERS = {{ include "payloads" . }}
  {{- if not (or $v.payload.partitionable $v.resize.enabled) }}
  SLOT_TYPE_1 = cpus=auto, GPUs={{ $v.gpus.count }}, memory=auto, disk=auto, swap=auto
  {{- end }}
{{- end }}
{{- if $v.events }}
75-events.conf: |
  {{- .Files.Get "config/75-events.conf" | nindent 2 }}
{{- end }}
{{- if $v.metrics }}
75-metrics.conf: |
  {{- .Files.Get "config/75-metrics.conf" | nindent 2 }}
{{- end }}
{{- end }}

{{/* The same, with the files of the site. */}}
{{- define "config" -}}
{{- $own := include "chartConfig" . | printf "%s\n" | fromYaml }}
{{- range $file, $_ := .Values.config }}
{{- if hasKey $own $file }}{{ fail (printf "config: the chart has a file %s itself; choose another name" $file) }}{{ end }}
{{- end }}
{{- merge $own .Values.config | toYaml }}
{{- end }}
