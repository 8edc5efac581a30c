{{/* What the schema cannot say: values that do not go together. */}}
{{- define "checks" -}}
{{- $v := .Values }}
{{- if and (eq $v.kind "pod") (ne (int $v.replicas) 1) }}
{{- fail "replicas: a bare pod is one; set kind to deployment or job for more" }}
{{- end }}
{{- if and (eq $v.kind "job") (not (include "sidecars" .)) }}
{{- fail "payload.sidecars: a Job needs sidecars, or it never ends; remove the value, or set kind to pod or deployment" }}
{{- end }}
{{- if and (eq $v.kind "deployment") (include "sidecars" .) }}
{{- fail "payload.sidecars: a Deployment restarts its pods always, and pods with sidecars end with their pilot; remove the value, or set kind to job" }}
{{- end }}
{{- if and (ne $v.kind "deployment") $v.deployment.disruptionBudget }}
{{- fail "deployment.disruptionBudget: only a Deployment replaces the pod that a drain has taken; set kind to deployment" }}
{{- end }}
{{- if and $v.gpus.count $v.payload.spares }}
{{- fail "payload.spares: a container with a GPU is no spare, because the GPU stays with it; set spares to 0" }}
{{- end }}
{{- range $label, $_ := include "selector" . | fromYaml }}
{{- if or (hasKey $v.podLabels $label) (hasKey $v.labels $label) }}
{{- fail (printf "labels and podLabels: %s is the chart's own; choose another name" $label) }}
{{- end }}
{{- end }}
{{- end }}
