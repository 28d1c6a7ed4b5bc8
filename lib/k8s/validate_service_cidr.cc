// ServiceCIDRs and IPAddresses: where Services' addresses come from, and who holds which.
#include <fmt/format.h>

#include "lib/api/proto/networking_v1.pb.h"
#include "lib/base/ip.h"
#include "lib/k8s/rule_table.h"
#include "lib/k8s/validate_network.h"

namespace keelson::k8s {

namespace {

namespace networkingv1 = api::networking::v1;

bool IsV6(std::string_view cidr) { return cidr.find(':') != std::string_view::npos; }

std::string PrintSpec(const networkingv1::ServiceCIDRSpec& spec) {
  return fmt::format(R"({{"cidrs":{}}})", PrintStrings(spec.cidrs()));
}

void CheckRanges(const networkingv1::ServiceCIDRSpec& spec, const Path& path, FieldErrors& errors) {
  const Path cidrs = path.Child("cidrs");
  if (spec.cidrs().empty()) {
    errors.push_back(Required(cidrs, "at least one CIDR required"));
    return;
  }
  if (spec.cidrs_size() > 2) {
    errors.push_back(InvalidRaw(cidrs, PrintSpec(spec), "may only hold up to 2 values"));
    return;
  }
  if (spec.cidrs_size() == 2 &&
      (!IsCidr(spec.cidrs(0)) || !IsCidr(spec.cidrs(1)) || IsV6(spec.cidrs(0)) == IsV6(spec.cidrs(1)))) {
    errors.push_back(InvalidRaw(cidrs, PrintSpec(spec),
                                "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and "
                                "2001:db8::/96"));
    return;
  }
  for (int i = 0; i < spec.cidrs_size(); ++i) {
    const Path item = cidrs.Index(i);
    CheckStrictCidr(spec.cidrs(i), {}, item, errors);
  }
}

void CheckServiceCidr(const networkingv1::ServiceCIDR& object, FieldErrors& errors) {
  CheckRanges(object.spec(), Path("spec"), errors);
}

// A range may get one of the other family beside it; nothing else changes.
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

// What Go's netip says about a name that is no address.
std::string WhyNotAddress(std::string_view name) {
  const std::string quoted = Quote(name);
  if (name.find(':') != std::string_view::npos)
    return fmt::format("ParseAddr({}): unable to parse IP", quoted);
  if (name.find('.') == std::string_view::npos)
    return fmt::format("ParseAddr({}): unable to parse IP", quoted);
  int fields = 1;
  size_t digits = 0;
  int value = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c >= '0' && c <= '9') {
      if (digits == 1 && value == 0)
        return fmt::format("ParseAddr({}): IPv4 field has octet with leading zero", quoted);
      value = value * 10 + (c - '0');
      ++digits;
      if (value > 255) return fmt::format("ParseAddr({}): IPv4 field has value >255", quoted);
      continue;
    }
    if (c != '.') {
      return fmt::format("ParseAddr({}): unexpected character (at {})", quoted, Quote(name.substr(i)));
    }
    if (digits == 0 || i + 1 == name.size()) {
      return fmt::format("ParseAddr({}): IPv4 field must have at least one digit (at {})", quoted,
                         Quote(name.substr(i)));
    }
    if (++fields > 4) return fmt::format("ParseAddr({}): IPv4 address too long", quoted);
    digits = 0;
    value = 0;
  }
  return fmt::format("ParseAddr({}): IPv4 address too short", quoted);
}

// An IPAddress is named by its address, in the one canonical form.
Problems CheckAddressName(std::string_view name) {
  Result<IpAddress> ip = IpAddress::Parse(name);
  if (!ip) return {WhyNotAddress(name)};
  if (ip->ToString() != name) return {"not a valid IP address in canonical format"};
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
