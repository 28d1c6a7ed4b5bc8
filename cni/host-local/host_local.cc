#include "cni/host-local/host_local.h"

#include "cni/host-local/allocator.h"
#include "cni/host-local/config.h"
#include "cni/host-local/store.h"

namespace keelson::cni {
namespace {

Outcome<AddResult> Add(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(HostLocalConfig config, ReadHostLocalConfig(request));
  AddResult result;
  if (!config.resolv_conf.empty()) {
    KEELSON_ASSIGN_OR_RETURN(result.dns, ReadResolvConf(config.resolv_conf));
  }
  KEELSON_ASSIGN_OR_RETURN(Store store, Store::Open(config.data_dir));
  Attachment owner{request.container_id, request.ifname};
  KEELSON_ASSIGN_OR_RETURN(std::vector<IpAddress> held, store.HeldBy(owner, false));
  KEELSON_ASSIGN_OR_RETURN(std::vector<Choice> choices, Choose(store, config, held));
  std::vector<IpAddress> wanted;
  for (const Choice& choice : choices) {
    if (!choice.held) wanted.push_back(choice.address);
  }
  KEELSON_RETURN_IF_ERROR(store.Reserve(owner, wanted, held));
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].searched) store.SetLastReserved(i, choices[i].address);
    result.ips.push_back({.address = IpPrefix(choices[i].address, choices[i].range->subnet.length()),
                          .gateway = choices[i].range->gateway});
  }
  result.routes = config.routes;
  return result;
}

Outcome<> Del(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(HostLocalConfig config, ReadHostLocalConfig(request));
  KEELSON_ASSIGN_OR_RETURN(Store store, Store::Open(config.data_dir));
  KEELSON_RETURN_IF_ERROR(store.Release({request.container_id, request.ifname}));
  return {};
}

Outcome<> Check(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(HostLocalConfig config, ReadHostLocalConfig(request));
  KEELSON_ASSIGN_OR_RETURN(Store store, Store::Open(config.data_dir));
  KEELSON_ASSIGN_OR_RETURN(auto held, store.HeldBy({request.container_id, request.ifname}, true));
  if (held.empty()) {
    return CniError{kCheckFailed,
                    "host-local: Failed to find address added by container " + request.container_id, ""};
  }
  return {};
}

Outcome<> Gc(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(HostLocalConfig config, ReadHostLocalConfig(request));
  KEELSON_ASSIGN_OR_RETURN(Store store, Store::Open(config.data_dir));
  KEELSON_RETURN_IF_ERROR(store.ReleaseAllBut(request.valid_attachments));
  return {};
}

Outcome<> Status(const Request& request) {
  Outcome<HostLocalConfig> config = ReadHostLocalConfig(request);
  if (!config) return config.error();
  return {};
}

}  // namespace

Plugin HostLocalPlugin() {
  return {.about = "CNI host-local IPAM plugin",
          .add = Add,
          .del = Del,
          .check = Check,
          .status = Status,
          .gc = Gc};
}

}  // namespace keelson::cni
