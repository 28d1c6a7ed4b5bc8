#include "controlplane/controllers/servicecidrs/controller.h"

#include <algorithm>

#include "lib/api/meta.h"
#include "lib/base/ip.h"
#include "lib/k8s/pods/conditions.h"

namespace keelson::controllers {
namespace {

constexpr char kFinalizer[] = "networking.k8s.io/service-cidr-finalizer";
constexpr char kManagedBy[] = "ipaddress.kubernetes.io/managed-by", kAllocator[] = "ipallocator.k8s.io";
// Until then an allocator may not have seen the deletion of the range.
constexpr std::chrono::seconds kDeletionGrace{10};

bool Has(const metav1::ObjectMeta& meta, std::string_view finalizer) {
  return std::find(meta.finalizers().begin(), meta.finalizers().end(), finalizer) != meta.finalizers().end();
}

std::vector<IpPrefix> RangesOf(const api::networking::v1::ServiceCIDR& cidr) {
  std::vector<IpPrefix> ranges;
  for (const std::string& text : cidr.spec().cidrs()) {
    if (Result<IpPrefix> range = IpPrefix::Parse(text)) ranges.push_back(range->Masked());
  }
  return ranges;
}

bool Contains(const api::networking::v1::ServiceCIDR& cidr, const IpAddress& ip) {
  const std::vector<IpPrefix> ranges = RangesOf(cidr);
  return std::any_of(ranges.begin(), ranges.end(), [&](const IpPrefix& range) {
    return range.is_v4() == ip.is_v4() && range.Contains(ip);
  });
}

}  // namespace

ServiceCidrController::ServiceCidrController(client::RestClient api, client::InformerFactory& informers,
                                             client::EventRecorder&, Clock& clock)
    : Controller("servicecidrs", clock),
      api_(std::move(api)),
      cidrs_(informers.Get<Cidr>()),
      addresses_(informers.Get<Address>()) {
  cidrs_.AddHandler([this](const client::Change<Cidr>& change) {
    queue().Add(change.key);
    // A change of one range may unblock or block the deletion of another.
    if (change.new_object) EnqueueOverlapping(*change.new_object);
    if (!change.new_object && change.old_object) EnqueueOverlapping(*change.old_object);
  });
  addresses_.AddHandler([this](const client::Change<Address>& change) {
    if (!change.new_object && change.old_object) EnqueueAround(*change.old_object);
  });
}

void ServiceCidrController::EnqueueAround(const Address& address) {
  Result<IpAddress> ip = IpAddress::Parse(address.metadata().name());
  if (!ip) return;
  for (const auto& cidr : cidrs_.List()) {
    if (Contains(*cidr, *ip)) queue().Add(cidr->metadata().name());
  }
}

void ServiceCidrController::EnqueueOverlapping(const Cidr& cidr) {
  const std::vector<IpPrefix> ranges = RangesOf(cidr);
  for (const auto& other : cidrs_.List()) {
    for (const IpPrefix& theirs : RangesOf(*other)) {
      if (std::any_of(ranges.begin(), ranges.end(), [&](const IpPrefix& ours) {
            return ours.is_v4() == theirs.is_v4() && ours.Overlaps(theirs);
          })) {
        queue().Add(other->metadata().name());
      }
    }
  }
}

bool ServiceCidrController::MayGo(const Cidr& cidr) const {
  std::vector<std::shared_ptr<const Cidr>> others;
  for (const auto& other : cidrs_.List()) {
    const bool stays = !other->metadata().has_deletion_timestamp();
    if (stays && other->metadata().name() != cidr.metadata().name()) others.push_back(other);
  }
  for (const auto& address : addresses_.List()) {
    const auto& labels = address->metadata().labels();
    auto manager = labels.find(kManagedBy);
    if (manager == labels.end() || manager->second != kAllocator) continue;
    Result<IpAddress> ip = IpAddress::Parse(address->metadata().name());
    if (!ip || !Contains(cidr, *ip)) continue;
    if (std::none_of(others.begin(), others.end(),
                     [&](const auto& other) { return Contains(*other, *ip); })) {
      return false;
    }
  }
  return true;
}

Result<> ServiceCidrController::SetReady(const client::RestClient& api, const Cidr& cidr, bool ready) {
  Cidr changed = cidr;
  metav1::Condition condition;
  condition.set_type("Ready");
  condition.set_status(ready ? "True" : "False");
  if (!ready) condition.set_reason("Terminating");
  condition.set_message(
      ready ? "Kubernetes Service CIDR is ready"
            : "There are still IPAddresses referencing the ServiceCIDR, please remove them or "
              "create a new ServiceCIDR");
  const metav1::Condition* before = k8s::FindCondition(cidr.status().conditions(), "Ready");
  if (before && before->status() == condition.status() && before->reason() == condition.reason()) return {};
  k8s::SetCondition(*changed.mutable_status()->mutable_conditions(), std::move(condition), clock().Now());
  Result<Cidr> stored = api.UpdateStatus(changed);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return {};
}

Result<> ServiceCidrController::Keep(const client::RestClient& api, const Cidr& cidr) {
  if (!Has(cidr.metadata(), kFinalizer)) {
    Cidr changed = cidr;
    changed.mutable_metadata()->add_finalizers(kFinalizer);
    Result<Cidr> stored = api.Update(changed);
    if (!stored) return stored.error();
    return SetReady(api, *stored, true);
  }
  return SetReady(api, cidr, true);
}

Result<Requeue> ServiceCidrController::End(const client::RestClient& api, const Cidr& cidr) {
  if (!Has(cidr.metadata(), kFinalizer)) return Requeue{};
  if (!MayGo(cidr)) {
    KEELSON_RETURN_IF_ERROR(SetReady(api, cidr, false));
    return Requeue{};  // the next deletion of an address or range triggers a sync
  }
  const auto left = api::FromTime(cidr.metadata().deletion_timestamp()) + kDeletionGrace - clock().Now();
  if (left > left.zero()) return Requeue{std::chrono::duration_cast<std::chrono::nanoseconds>(left)};
  Cidr changed = cidr;
  auto& finalizers = *changed.mutable_metadata()->mutable_finalizers();
  finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), kFinalizer), finalizers.end());
  Result<Cidr> stored = api.Update(changed);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return Requeue{};
}

Result<Requeue> ServiceCidrController::Reconcile(const std::string& key, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  auto cidr = cidrs_.Get(key);
  if (!cidr) return Requeue{};
  if (cidr->metadata().has_deletion_timestamp()) return End(api, *cidr);
  KEELSON_RETURN_IF_ERROR(Keep(api, *cidr));
  return Requeue{};
}

}  // namespace keelson::controllers
