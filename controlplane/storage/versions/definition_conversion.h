// CustomResourceDefinitions as kube-apiserver stores them, up to 1.36: in apiextensions.k8s.io/v1beta1, whose spec has once what
// all versions share (https://issue.k8s.io/82292).
#pragma once

#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/api/proto/apiextensions_v1beta1.pb.h"

namespace keelson {
namespace apiextensionsv1 = api::apiextensions::v1;
namespace apiextensionsv1beta1 = api::apiextensions::v1beta1;
}  // namespace keelson

namespace keelson::storage {

// The same definition in v1, with the defaults that v1beta1 has.
apiextensionsv1::CustomResourceDefinition ToV1(const apiextensionsv1beta1::CustomResourceDefinition& from);

}  // namespace keelson::storage
