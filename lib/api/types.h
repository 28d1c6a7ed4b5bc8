// Short names for the API types, as in Kubernetes code: corev1::Pod, metav1::ObjectMeta.
#pragma once

#include "lib/api/proto/apps_v1.pb.h"
#include "lib/api/proto/authentication_v1.pb.h"
#include "lib/api/proto/authorization_v1.pb.h"
#include "lib/api/proto/autoscaling_v1.pb.h"
#include "lib/api/proto/coordination_v1.pb.h"
#include "lib/api/proto/core_v1_common.pb.h"
#include "lib/api/proto/core_v1_config.pb.h"
#include "lib/api/proto/core_v1_container.pb.h"
#include "lib/api/proto/core_v1_node.pb.h"
#include "lib/api/proto/core_v1_pod.pb.h"
#include "lib/api/proto/core_v1_service.pb.h"
#include "lib/api/proto/core_v1_volume.pb.h"
#include "lib/api/proto/discovery_v1.pb.h"
#include "lib/api/proto/events_v1.pb.h"
#include "lib/api/proto/intstr.pb.h"
#include "lib/api/proto/meta_v1.pb.h"
#include "lib/api/proto/quantity.pb.h"
#include "lib/api/proto/rbac_v1.pb.h"
#include "lib/api/proto/runtime.pb.h"

namespace keelson {

namespace appsv1 = api::apps::v1;
namespace authenticationv1 = api::authentication::v1;
namespace authorizationv1 = api::authorization::v1;
namespace autoscalingv1 = api::autoscaling::v1;
namespace coordinationv1 = api::coordination::v1;
namespace corev1 = api::core::v1;
namespace discoveryv1 = api::discovery::v1;
namespace eventsv1 = api::events::v1;
namespace intstr = api::intstr;
namespace metav1 = api::meta::v1;
namespace rbacv1 = api::rbac::v1;
using api::resource::Quantity;

}  // namespace keelson
