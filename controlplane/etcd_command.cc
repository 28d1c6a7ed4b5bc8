#include "controlplane/etcd_command.h"

#include <cstdio>

#include "controlplane/etcd/client.h"
#include "controlplane/etcd/supervisor.h"
#include "lib/base/file.h"
#include "lib/etcd/snapshot.h"

namespace keelson::controlplane {
namespace {

using Verb = EtcdCommand::Verb;

Result<etcd::ClientOptions> ClientOptionsOf(const Options& options) {
  if (options.etcd_servers.empty()) return etcd::Supervisor::Running(options.data_dir + "/etcd");
  etcd::ClientOptions client;
  client.endpoints = options.etcd_servers;
  for (const auto& [path, pem] : {std::pair(&options.etcd_ca_file, &client.ca_pem),
                                  std::pair(&options.etcd_certificate_file, &client.certificate_pem),
                                  std::pair(&options.etcd_key_file, &client.key_pem)}) {
    if (path->empty()) continue;
    KEELSON_ASSIGN_OR_RETURN(*pem, ReadFile(*path));
  }
  return client;
}

Result<> Do(const EtcdCommand& command, const Options& options) {
  if (command.verb == Verb::kStatus) {
    KEELSON_ASSIGN_OR_RETURN(std::string text, etcd::DescribeSnapshot(command.path));
    std::fputs(text.c_str(), stdout);
    return {};
  }
  if (command.verb == Verb::kRestore) {
    KEELSON_RETURN_IF_ERROR(etcd::RestoreSnapshot(command.path, options.data_dir + "/etcd/data"));
    std::printf("Restored into %s/etcd/data\n", options.data_dir.c_str());
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(etcd::ClientOptions client, ClientOptionsOf(options));
  if (command.verb == Verb::kDefragment) {
    KEELSON_RETURN_IF_ERROR(etcd::Client(client).Defragment({}));
    std::printf("Defragmented\n");
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(etcd::SnapshotInfo info, etcd::SaveSnapshot(command.path, [&](const auto& each) {
                             return etcd::Client(client).Snapshot(each, {});
                           }));
  std::printf("Snapshot saved at %s (%lld bytes)\n", command.path.c_str(),
              static_cast<long long>(info.bytes));
  return {};
}

}  // namespace

int RunEtcdCommand(const EtcdCommand& command, const Options& options) {
  Result<> done = Do(command, options);
  if (done) return 0;
  std::fprintf(stderr, "Error: %s\n", done.error().message().c_str());
  return 1;
}

}  // namespace keelson::controlplane
