{{/* Labels by which pods are selected. Two releases in a namespace have two values of the last. */}}
{{- define "selector" -}}
app.kubernetes.io/name: podstarter
app.kubernetes.io/component: glidein
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "labels" -}}
{{- merge (include "selector" . | fromYaml) .Values.labels | toYaml }}
{{- end }}

{{/* Metadata of an object that is called as the release. */}}
{{- define "metadata" -}}
name: {{ .Release.Name }}
namespace: {{ .Release.Namespace }}
labels: {{- include "labels" . | nindent 2 }}
{{- end }}

{{/* Names of the payload containers, separated by a comma and a space. */}}
{{- define "payloads" -}}
{{- $names := list "payload" }}
{{- range untilStep 2 (int (add .Values.payload.slots .Values.payload.spares 1)) 1 }}
{{- $names = append $names (printf "payload-%d" .) }}
{{- end }}
{{- join ", " $names }}
{{- end }}

{{/* "true" if payload containers are sidecars. */}}
{{- define "sidecars" -}}
{{- $sidecars := .Values.payload.sidecars }}
{{- if kindIs "invalid" $sidecars }}{{ $sidecars = eq .Values.kind "job" }}{{ end }}
{{- if $sidecars }}true{{ end }}
{{- end }}

{{/* The configuration has a name of its contents: a change of it replaces pods, and pods that are there keep theirs. */}}
{{- define "configName" -}}
{{ .Release.Name }}-config-{{ include "config" . | sha256sum | trunc 10 }}
{{- end }}
