// ServiceCIDRs and IPAddresses: the ranges of Services' addresses, and the owner of each address.
#include <fmt/format.h>

#include "lib/api/proto/networking_v1.pb.h"
#include "lib/base/ip.h"
#include "lib/k8s/validation/addresses.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

namespace networkingv1 = api::networking::v1;

bool IsV6(std::string_view cidr) { return cidr.find(':') != std::string_view::npos; }

void CheckRanges(const networkingv1::ServiceCIDRSpec& spec, const Path& path, FieldErrors& errors) {
  const Path cidrs = path.Child("cidrs");
  if (spec.cidrs().empty()) {
    errors.push_back(Required(cidrs, "at least one CIDR required"));
    return;
  }
  if (spec.cidrs_size() > 2) {
    errors.push_back(InvalidRaw(cidrs, fmt::format(R"({{"CIDRs":{}}})", PrintStrings(spec.cidrs())),
                                "may only hold up to 2 values"));
    return;
  }
  for (int i = 0; i < spec.cidrs_size(); ++i) CheckStrictCidr(spec.cidrs(i), {}, cidrs.Index(i), errors);
  if (spec.cidrs_size() == 2 && IsCidr(spec.cidrs(0)) && IsCidr(spec.cidrs(1)) &&
      IsV6(spec.cidrs(0)) == IsV6(spec.cidrs(1))) {
    errors.push_back(InvalidRaw(cidrs, PrintStrings(spec.cidrs()),
                                "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and "
                                "2001:db8::/64"));
  }
}

void CheckServiceCidr(const networkingv1::ServiceCIDR& object, FieldErrors& errors) {
  CheckRanges(object.spec(), Path("spec"), errors);
}

// A range of the other family may be added; nothing else may change.
void CheckServiceCidrUpdate(const networkingv1::ServiceCIDR& object, const networkingv1::ServiceCIDR& old,
                            FieldErrors& errors) {
  const Strings &now = object.spec().cidrs(), &before = old.spec().cidrs();
  const Path spec("spec");
  const Path path = spec.Child("cidrs");
  if (now.size() == before.size()) {
    for (int i = 0; i < now.size(); ++i) CheckImmutable(now[i], before[i], path.Index(i), errors);
  } else if (before.size() == 1 && now.size() == 2) {
    CheckImmutable(now[0], before[0], path.Index(0), errors);
    CheckRanges(object.spec(), spec, errors);
  } else {
    errors.push_back(InvalidRaw(path, PrintList(now), kImmutable));
  }
}

// The name of an IPAddress is its address in canonical form.
Problems CheckAddressName(std::string_view name) {
  Result<IpAddress> ip = IpAddress::Parse(name);
  if (!ip) return {"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"};
  if (ip->ToString() != name) return {fmt::format("must be in canonical form ({})", Quote(ip->ToString()))};
  return {};
}

void CheckParent(const networkingv1::ParentReference& parent, const Path& path, FieldErrors& errors) {
  if (!parent.group().empty()) {
    AddProblems(CheckDns1123Subdomain(parent.group()), parent.group(), path.Child("group"), errors);
  }
  CheckName(parent.resource(), CheckPathSegmentName, path.Child("resource"), errors);
  CheckName(parent.name(), CheckPathSegmentName, path.Child("name"), errors);
  if (!parent.namespace_().empty()) {
    AddProblems(CheckPathSegmentName(parent.namespace_()), parent.namespace_(), path.Child("namespace"),
                errors);
  }
}

void CheckAddress(const networkingv1::IPAddress& object, FieldErrors& errors) {
  const Path spec("spec");
  const Path parent = spec.Child("parentRef");
  if (!object.spec().has_parent_ref()) {
    errors.push_back(Required(parent));
  } else {
    CheckParent(object.spec().parent_ref(), parent, errors);
  }
}

void CheckAddressUpdate(const networkingv1::IPAddress& object, const networkingv1::IPAddress& old,
                        FieldErrors& errors) {
  CheckImmutable(object.spec().parent_ref(), old.spec().parent_ref(), Path("spec").Child("parentRef"),
                 errors);
}

}  // namespace

void RegisterServiceCidrRules(RuleTable& table) {
  table.Add<networkingv1::ServiceCIDR, CheckServiceCidr>();
  table.AddUpdate<networkingv1::ServiceCIDR, CheckServiceCidrUpdate>(true);
  table.Add<networkingv1::IPAddress, CheckAddress>().name = CheckAddressName;
  table.AddUpdate<networkingv1::IPAddress, CheckAddressUpdate>(true);
}

}  // namespace keelson::k8s
