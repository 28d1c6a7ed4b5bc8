// The namespaceSelector and objectSelector of webhooks and admission policies.
#pragma once

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/storage/store.h"
#include "lib/api/selector.h"

namespace keelson::apiserver {

// The namespace of a request, or null when it has none. A namespace that is being written is its new state.
// kNotFound: the namespace does not exist.
Result<std::shared_ptr<const corev1::Namespace>> NamespaceOf(const AdmissionRequest& request,
                                                             storage::Store& store);

// Cluster-scoped requests match every selector, except those for namespaces, whose own labels count.
// kNotFound: the namespace does not exist.
Result<bool> NamespaceMatches(const api::LabelSelector& selector, const AdmissionRequest& request,
                              storage::Store& store);

// Whether the new or the old object has the labels. Objects without metadata have none, and do not match.
bool ObjectMatches(const api::LabelSelector& selector, const AdmissionRequest& request);

}  // namespace keelson::apiserver
