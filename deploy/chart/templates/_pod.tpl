{{/* Labels and annotations of the pod, behind those of every object. */}}
{{- define "podMetadata" -}}
{{- $v := .Values }}
labels: {{- merge (include "selector" . | fromYaml) $v.podLabels $v.labels | toYaml | nindent 2 }}
annotations:
  kubectl.kubernetes.io/default-container: pilot
  {{- if $v.metrics }}
  prometheus.io/scrape: "true"
  prometheus.io/port: "9464"
  prometheus.io/path: /metrics
  {{- end }}
  {{- if $v.resize.enabled }}
  resize.podstarter/cpu: {{ $v.resize.cpu | default $v.payload.cpu | quote }}
  resize.podstarter/memory: {{ $v.resize.memory | default $v.payload.memory }}
  {{- end }}
  {{- if $v.openshift }}
  openshift.io/required-scc: podstarter
  {{- end }}
  {{- with $v.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The pod's specification: deploy/glidein/pod.yaml with values. That file says why each line is as it is. */}}
{{- define "podSpec" -}}
{{- include "checks" . }}
{{- $root := . }}
{{- $v := .Values }}
{{- $payloads := include "payloads" . | splitList ", " }}
{{- $furtherSlots := sub $v.payload.slots 1 }}
{{- $limits := $v.resize.enabled | ternary "requests" "limits" -}}
restartPolicy: {{ empty (include "sidecars" .) | ternary "Always" "OnFailure" }}
shareProcessNamespace: {{ eq $v.mode "shared" }}
terminationGracePeriodSeconds: {{ $v.terminationGracePeriodSeconds }}
serviceAccountName: {{ .Release.Name }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- if $v.userNamespace }}
hostUsers: false
{{- end }}
{{- with $v.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
initContainers:
  # It gives sidecars their wrapper, so it comes first.
  - name: prepare
    image: {{ required "pilot.image: name the pilot image; docs/admin/install.md says how to build it" $v.pilot.image }}
    command: [/opt/podstarter/entrypoint, prepare]
    resources:
      requests: {cpu: 10m, memory: 32Mi, ephemeral-storage: 16Mi}
      limits: {cpu: "1", memory: 64Mi, ephemeral-storage: 64Mi}
    securityContext:
      runAsUser: 0
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL], add: [CHOWN, DAC_OVERRIDE, FOWNER]}
      seccompProfile: {type: RuntimeDefault}
    volumeMounts:
      - {name: execute, mountPath: /var/lib/condor/execute}
      - {name: podstarter-bin, mountPath: /run/podstarter/bin}
      - {name: podstarter-control, mountPath: /run/podstarter/control}
      - {name: podstarter-private, mountPath: /run/podstarter/private}
  {{- if include "sidecars" . }}
  {{- range $payloads }}
  {{- include "payload" (dict "name" . "root" $root) | nindent 2 }}
  {{- end }}
  {{- end }}
containers:
  - name: pilot
    image: {{ $v.pilot.image }}
    command: [/opt/podstarter/entrypoint, pilot]
    env:
      - name: POD_NAME
        valueFrom: {fieldRef: {fieldPath: metadata.name}}
      - name: POD_NAMESPACE
        valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
      # With resize, limits change. What the containers request is what the node keeps for them.
      - name: PAYLOAD_MILLICPUS
        valueFrom: {resourceFieldRef: {containerName: payload, resource: {{ $limits }}.cpu, divisor: 1m}}
      - name: PAYLOAD_MEMORY_KB
        valueFrom: {resourceFieldRef: {containerName: payload, resource: {{ $limits }}.memory, divisor: 1Ki}}
      - name: PAYLOAD_DISK_KB
        valueFrom: {resourceFieldRef: {containerName: payload, resource: limits.ephemeral-storage, divisor: 1Ki}}
      {{- with $v.pilot.env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- if $v.metrics }}
    ports:
      - {name: metrics, containerPort: 9464}
    {{- end }}
    resources:
      requests:
        cpu: {{ $v.pilot.requests.cpu | quote }}
        memory: {{ $v.pilot.requests.memory | default (printf "%dMi" (add 128 (mul 16 $furtherSlots))) }}
        ephemeral-storage: {{ $v.pilot.requests.disk }}
      limits:
        cpu: {{ $v.pilot.limits.cpu | quote }}
        memory: {{ $v.pilot.limits.memory | default (printf "%dMi" (add 512 (mul 64 $furtherSlots))) }}
        ephemeral-storage: {{ $v.pilot.limits.disk }}
    securityContext:
      runAsUser: 0
      allowPrivilegeEscalation: false
      capabilities:
        drop: [ALL]
        add: [AUDIT_WRITE, CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETPCAP, SETUID, SYS_CHROOT]
      seccompProfile: {type: RuntimeDefault}
    {{- if include "sidecars" . }}
    lifecycle:
      # When the pod ends, the kubelet tells sidecars last. So jobs that may retire learn of it from here.
      preStop: {exec: {command: [/opt/podstarter/bin/condor_pod_starter, -pilot-stops]}}
    {{- end }}
    volumeMounts:
      - {name: execute, mountPath: /var/lib/condor/execute}
      - {name: log, mountPath: /var/log/condor}
      - {name: config, mountPath: /etc/podstarter/config, readOnly: true}
      - {name: credentials, mountPath: /etc/podstarter/credentials, readOnly: true}
      - {name: kubernetes, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
      - {name: podstarter-control, mountPath: /run/podstarter/control}
      - {name: podstarter-private, mountPath: /run/podstarter/private}
      {{- with $v.pilot.volumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
  {{- if not (include "sidecars" .) }}
  {{- range $payloads }}
  {{- include "payload" (dict "name" . "root" $root) | nindent 2 }}
  {{- end }}
  {{- end }}
volumes:
  - name: execute
    emptyDir: {}
  {{- range $payloads }}
  - name: shm-{{ . }}
    emptyDir: {medium: Memory, sizeLimit: {{ $v.payload.shm }}}
  {{- end }}
  - name: log
    emptyDir: {}
  - name: podstarter-bin
    emptyDir: {sizeLimit: 64Mi}
  - name: podstarter-control
    emptyDir: {sizeLimit: 64Mi}
  - name: podstarter-private
    emptyDir: {sizeLimit: 64Mi}
  - name: config
    configMap: {name: {{ include "configName" . }}}
  - name: credentials
    secret: {secretName: {{ $v.pool.credentials }}, defaultMode: 0400}
  - name: kubernetes
    projected:
      defaultMode: 0400
      sources:
        - serviceAccountToken: {path: token, expirationSeconds: 3600}
        - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
        - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
  {{- with $v.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
