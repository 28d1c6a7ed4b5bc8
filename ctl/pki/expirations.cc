#include <boost/json.hpp>
#include <ctime>

#include "ctl/output.h"
#include "ctl/pki/renew.h"
#include "lib/api/meta.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

std::string DateText(WallTime time) {
  const std::time_t seconds = WallTime::clock::to_time_t(time);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%b %d, %Y %H:%M UTC", &parts);
  return text;
}

std::chrono::seconds Left(const Expiration& one, WallTime now) {
  return std::chrono::duration_cast<std::chrono::seconds>(one.not_after - now);
}

const char* YesNo(bool value) { return value ? "yes" : "no"; }

json::object Row(const Expiration& one, WallTime now) {
  json::object out;
  out["name"] = one.name;
  if (one.missing) {
    out["missing"] = true;
    return out;
  }
  out["expirationDate"] = api::FormatTime(api::ToTime(one.not_after));
  out["residualTime"] = Left(one, now).count();
  out["externallyManaged"] = one.external;
  if (!one.authority.empty()) out["caName"] = one.authority;
  return out;
}

}  // namespace

std::string ExpirationTable(const Expirations& found, WallTime now) {
  std::vector<std::vector<std::string>> certificates = {
      {"CERTIFICATE", "EXPIRES", "RESIDUAL TIME", "CERTIFICATE AUTHORITY", "EXTERNALLY MANAGED"}};
  for (const Expiration& one : found.certificates) {
    if (one.missing) {
      certificates.push_back({"!MISSING! " + one.name, "", "", "", ""});
    } else {
      certificates.push_back({one.name, DateText(one.not_after), ShortDuration(Left(one, now)), one.authority,
                              YesNo(one.external)});
    }
  }
  std::vector<std::vector<std::string>> authorities = {
      {"CERTIFICATE AUTHORITY", "EXPIRES", "RESIDUAL TIME", "EXTERNALLY MANAGED"}};
  for (const Expiration& one : found.authorities) {
    if (one.missing) {
      authorities.push_back({"!MISSING! " + one.name, "", "", ""});
    } else {
      authorities.push_back(
          {one.name, DateText(one.not_after), ShortDuration(Left(one, now)), YesNo(one.external)});
    }
  }
  return TextTable(certificates) + "\n" + TextTable(authorities);
}

json::value ExpirationDocument(const Expirations& found, WallTime now) {
  json::object out;
  out["kind"] = "CertificateExpirationInfo";
  out["apiVersion"] = "output.kubeadm.k8s.io/v1alpha3";
  json::array certificates, authorities;
  for (const Expiration& one : found.certificates) certificates.push_back(Row(one, now));
  for (const Expiration& one : found.authorities) authorities.push_back(Row(one, now));
  out["certificates"] = std::move(certificates);
  out["certificateAuthorities"] = std::move(authorities);
  return out;
}

}  // namespace keelson::ctl
