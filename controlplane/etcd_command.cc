#include "controlplane/etcd_command.h"

#include <cstdio>

#include "controlplane/etcd/client.h"
#include "controlplane/etcd/supervisor.h"
#include "controlplane/options/option_values.h"
#include "controlplane/storage/encryption.h"
#include "controlplane/storage/survey/survey.h"
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

constexpr int kFound = 2;

// All keys of a range, as of one revision; pages of a large etcd must not be compacted meanwhile.
Result<> ForEachKey(etcd::Client& client, std::string_view prefix, int64_t& revision,
                    const std::function<void(const etcd::KeyValue&)>& each) {
  constexpr int64_t kPage = 500;
  std::string next(prefix);
  etcd::RangeOptions options;
  options.end = etcd::PrefixEnd(next);
  options.limit = kPage;
  while (true) {
    options.revision = revision;
    KEELSON_ASSIGN_OR_RETURN(const etcd::RangeResult page, client.Range(next, options, {}));
    if (revision == 0) revision = page.revision;
    for (const etcd::KeyValue& kv : page.kvs) each(kv);
    if (!page.more || page.kvs.empty()) return {};
    next = page.kvs.back().key + '\0';
  }
}

void Print(const storage::Survey& survey) {
  std::printf("%-56s %-36s %-9s %-20s %s\n", "RESOURCE", "STORED AS", "ENCODING", "ENCRYPTION", "OBJECTS");
  for (const auto& [form, count] : survey.forms()) {
    std::printf("%-56s %-36s %-9s %-20s %zu\n", form.resource.c_str(), form.version.c_str(),
                form.encoding.c_str(), form.encryption.empty() ? "none" : form.encryption.c_str(), count);
  }
  for (const storage::Finding& finding : survey.findings()) {
    std::printf("[NotUnderstood] %s %s\n", finding.key.c_str(), finding.problem.c_str());
  }
  if (const size_t more = survey.finding_count() - survey.findings().size(); more > 0) {
    std::printf("and %zu more\n", more);
  }
}

// Reads only. Returns whether everything would be understood.
Result<bool> Check(const Options& options) {
  KEELSON_ASSIGN_OR_RETURN(etcd::ClientOptions access, ClientOptionsOf(options));
  KEELSON_ASSIGN_OR_RETURN(access.prefix, EtcdPrefix(options.etcd_prefix));
  std::shared_ptr<storage::Encryption> encryption;
  if (!options.encryption_config_file.empty()) {
    KEELSON_ASSIGN_OR_RETURN(encryption,
                             storage::Encryption::Load(options.encryption_config_file, access.prefix));
  }
  etcd::Client client(std::move(access));
  storage::Survey survey(std::move(encryption));
  int64_t revision = 0;
  KEELSON_RETURN_IF_ERROR(ForEachKey(client, storage::Survey::kDefinitions, revision,
                                     [&](const etcd::KeyValue& kv) { survey.Define(kv); }));
  KEELSON_RETURN_IF_ERROR(
      ForEachKey(client, "/registry/", revision, [&](const etcd::KeyValue& kv) { survey.Add(kv); }));
  Print(survey);
  return survey.finding_count() == 0;
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
  Result<> done;
  if (command.verb == Verb::kCheck) {
    const Result<bool> understood = Check(options);
    if (understood) return *understood ? 0 : kFound;
    done = understood.error();
  } else {
    done = Do(command, options);
  }
  if (done) return 0;
  std::fprintf(stderr, "Error: %s\n", done.error().message().c_str());
  return 1;
}

}  // namespace keelson::controlplane
