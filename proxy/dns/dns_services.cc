#include "proxy/dns/dns_services.h"

#include "lib/base/log.h"
#include "proxy/dns/dns_link.h"

namespace keelson::proxy::dns {
namespace {

Result<> Follow(ClusterDns& dns, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  Result<> ended = dns.Follow(stop, [&]() -> Result<> {
    KEELSON_RETURN_IF_ERROR(SetDnsAddresses(socket, dns.addresses()));
    log::Info("Cluster DNS answers", {{"link", kDnsLink}, {"address", dns.addresses().front().ToString()}});
    return {};
  });
  Result<bool> removed = RemoveDnsLink(socket);
  if (!removed) log::Warn("Cannot remove the DNS link", {{"err", removed.error()}});
  return ended;
}

}  // namespace

void AddServices(ServiceGroup& group, ClusterDns& dns) {
  group.Add({"dns", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return dns.ServeUdp(stop);
             }});
  group.Add({"dns-addresses", {}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return dns.WriteAddresses(stop);
             }});
  group.Add({"dns-zone", {"dns"}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return Follow(dns, stop);
             }});
}

}  // namespace keelson::proxy::dns
