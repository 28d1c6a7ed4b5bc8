// What an object must satisfy to be stored, kind by kind, with upstream's wordings. Objects have been
// defaulted (defaulting.h) before. Pure and thread safe.
#pragma once

#include <string_view>

#include <google/protobuf/message.h>

#include "lib/api/proto/core_v1_pod.pb.h"
#include "lib/k8s/field_error.h"

namespace keelson::k8s {

// Rules of a new object: metadata (name, namespace, labels, annotations, owners, finalizers) and the
// kind's own. metadata.name must be filled in already (generateName done). Kinds without rules of their
// own get the metadata rules, and closed string types as the schema declares them.
FieldErrors Validate(const google::protobuf::Message& object);
// The same of a Pod, for programs that know no other kinds.
FieldErrors ValidatePod(const api::core::v1::Pod& pod);

// Rules of an update: those of the new object, and what may not change from `old` to it. The registry has
// done its part before: resourceVersion, uid, creationTimestamp and allocated values (clusterIP, node ports)
// that the user left out are copied from `old`.
FieldErrors ValidateUpdate(const google::protobuf::Message& object, const google::protobuf::Message& old);

// Rules of an update through the status subresource (metadata and what the kind guards in status).
FieldErrors ValidateStatusUpdate(const google::protobuf::Message& object,
                                 const google::protobuf::Message& old);

// Rules of an update through another subresource ("ephemeralcontainers", "resize", ...); those of an update
// where the kind has none for it.
FieldErrors ValidatePartUpdate(const google::protobuf::Message& object, const google::protobuf::Message& old,
                               std::string_view subresource);

// Rules of the pods/binding subresource's body.
FieldErrors ValidateBinding(const google::protobuf::Message& binding);

// Rules of a review (SubjectAccessReview, TokenReview, ...): a question that is answered, not stored.
FieldErrors ValidateReview(const google::protobuf::Message& review);

}  // namespace keelson::k8s
