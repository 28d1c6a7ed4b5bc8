// DenyServiceExternalIPs: Services may not add external IPs, which could redirect any address's traffic
// (CVE-2020-8554). Existing ones may stay.
#include <algorithm>

#include "controlplane/apiserver/admission/plugins.h"

namespace keelson::apiserver {
namespace {

class DenyExternalIps : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "DenyServiceExternalIPs"; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (!request.Is("", "services") || !(request.Creates() || request.Updates())) return {};
    for (const std::string& ip : request.Object<corev1::Service>().spec().external_ips()) {
      if (!request.old_object || !Has(request.OldObject<corev1::Service>(), ip)) {
        return NotAdmitted(request, "Use of external IPs is denied by admission control");
      }
    }
    return {};
  }

 private:
  static bool Has(const corev1::Service& service, const std::string& ip) {
    const auto& ips = service.spec().external_ips();
    return std::find(ips.begin(), ips.end(), ip) != ips.end();
  }
};

}  // namespace

PluginPtr NewDenyExternalIps() { return std::make_unique<DenyExternalIps>(); }

}  // namespace keelson::apiserver
