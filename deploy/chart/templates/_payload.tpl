{{/* A payload container. It gets a dict: name, and the chart's own root. deploy/glidein/pod.yaml says why each line is as it is. */}}
{{- define "payload" -}}
{{- $v := .root.Values }}
- name: {{ .name }}
  image: {{ $v.payload.image }}
  imagePullPolicy: IfNotPresent
  command: [/proc/slabinfo]
  args: [-control, /run/podstarter/control/{{ .name }}]
  workingDir: /
  env:
    - name: POD_STARTER_NONCE
      valueFrom: {fieldRef: {fieldPath: "metadata.annotations['podstarter/nonce-{{ .name }}']"}}
    {{- if not (and $v.gpus.count (hasPrefix "nvidia.com/" $v.gpus.resource)) }}
    - {name: NVIDIA_VISIBLE_DEVICES, value: void}
    {{- end }}
  resources:
    requests:
      cpu: {{ $v.payload.requests.cpu | default $v.payload.cpu | quote }}
      memory: {{ $v.payload.requests.memory | default $v.payload.memory }}
      ephemeral-storage: {{ $v.payload.requests.disk | default $v.payload.disk }}
    limits:
      cpu: {{ $v.payload.cpu | quote }}
      memory: {{ $v.payload.memory }}
      ephemeral-storage: {{ $v.payload.disk }}
      {{- with $v.gpus.count }}
      {{ $v.gpus.resource }}: {{ . }}
      {{- end }}
  securityContext:
    runAsUser: 0
    allowPrivilegeEscalation: false
    capabilities:
      drop: [ALL]
      add: [KILL, SETGID, SETPCAP, SETUID]
    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - {name: execute, mountPath: /var/lib/condor/execute}
    - {name: podstarter-control, mountPath: /run/podstarter/control}
    - {name: podstarter-bin, mountPath: /proc/slabinfo, subPath: condor_pod_wrapper, readOnly: true}
    - {name: shm-{{ .name }}, mountPath: /dev/shm}
    {{- with $v.payload.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if include "sidecars" .root }}
  restartPolicy: Always
  {{- end }}
{{- end }}
