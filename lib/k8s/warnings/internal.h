// Internal to lib/k8s/warnings: warnings about parts of objects.
#pragma once

#include <string_view>

#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/api/types.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/warnings/warnings.h"

namespace keelson::k8s {

// `path` is the template's ("spec.template"), or null for a pod, whose paths begin with its fields.
void WarnOfPod(const corev1::PodSpec& spec, const metav1::ObjectMeta& meta, const Path* path, Warnings& out);
void WarnOfPorts(const corev1::PodSpec& spec, const Path& path, Warnings& out);
void WarnOfClaimSpec(const corev1::PersistentVolumeClaimSpec& spec, const Path& path, Warnings& out);
void WarnOfNodeTerm(const corev1::NodeSelectorTerm& term, bool preferred, const Path& path, Warnings& out);
// Warns of addresses that only lenient parsers understand.
void WarnOfIp(const std::string& value, const Path& path, Warnings& out);
// The warning for a deprecated node label; empty: the label is not deprecated.
std::string_view DeprecatedNodeLabel(std::string_view key);
// `old` null: the definition is new. Only what the update brings is warned of.
void WarnOfDefinition(const api::apiextensions::v1::CustomResourceDefinition& object,
                      const api::apiextensions::v1::CustomResourceDefinition* old, Warnings& out);
void Warn(const Path& path, std::string_view text, Warnings& out);  // "path: text"

}  // namespace keelson::k8s
