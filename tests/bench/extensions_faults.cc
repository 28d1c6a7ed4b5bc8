#include "tests/bench/extensions_faults.h"

#include <chrono>

#include <fmt/format.h>

#include "lib/base/clock.h"
#include "tests/bench/bystander.h"

namespace keelson::bench {
namespace {

constexpr int kTurns = 3;
constexpr double kP99 = 0.99;

std::string Text(const std::map<int, int>& statuses) {
  std::string out;
  for (const auto& [status, count] : statuses) {
    out +=
        fmt::format("{}{} {}", out.empty() ? "" : ", ", count, status == 0 ? "cut" : std::to_string(status));
  }
  return out;
}

class Faults {
 public:
  Faults(const LoadClient& client, client::Transport& transport, const FaultOptions& options)
      : client_(client), transport_(transport), options_(options) {}

  Result<> Run() const {
    KEELSON_RETURN_IF_ERROR(
        Send({"POST", "/api/v1/namespaces/default/configmaps",
              "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'bystander'},'data':{'a':'b'}}"}));
    fmt::print("p99 of a get alone, beside sound requests, beside faulty ones; the responses to these\n");
    for (auto make : {WebhookFaults, ConversionFaults, DefinitionFaults}) {
      KEELSON_RETURN_IF_ERROR(Measure(make()));
    }
    KEELSON_RETURN_IF_ERROR(Measure(ExtensionServerFaults(options_.port)));
    KEELSON_RETURN_IF_ERROR(ManyWatches());
    return Send({"DELETE", kBystander, ""});
  }

 private:
  Result<> Send(const Call& call) const {
    Result<std::string> sent = client_.Send(call.method, call.path, Json(call.body));
    return sent ? Result<>() : sent.error();
  }
  Result<> SendAll(const std::vector<Call>& calls) const {
    for (const Call& call : calls) KEELSON_RETURN_IF_ERROR(Send(call));
    return {};
  }
  Result<> AwaitAnswer(const std::string& path) const {
    const SteadyTime end = SteadyTime::clock::now() + std::chrono::seconds(30);
    for (;;) {
      Result<std::string> got = client_.Send("GET", path);
      if (got) return {};
      if (SteadyTime::clock::now() > end) return got.error();
    }
  }
  bool Wanted(const std::string& name) const { return name.find(options_.only) != std::string::npos; }

  Result<> Measure(const FaultGroup& group) const {
    for (const Fault& fault : group.faults) {
      if (!Wanted(fault.name)) continue;
      KEELSON_RETURN_IF_ERROR(SendAll(fault.before));
      if (!fault.wait_for.empty()) KEELSON_RETURN_IF_ERROR(AwaitAnswer(fault.wait_for));
      KEELSON_RETURN_IF_ERROR(SendAll(fault.objects));
      if (fault.begin) fault.begin();
      KEELSON_RETURN_IF_ERROR(Compare(fault));
      KEELSON_RETURN_IF_ERROR(SendAll(fault.after));
    }
    return {};
  }

  // In turns, so that a slow moment of the machine meets all.
  Result<> Compare(const Fault& fault) const {
    std::vector<double> alone, sound, faulty;
    std::map<int, int> statuses;
    for (int turn = 0; turn < kTurns; ++turn) {
      KEELSON_RETURN_IF_ERROR(Read(alone));
      {
        const Background background(client_, fault, fault.sound);
        KEELSON_RETURN_IF_ERROR(Read(sound));
      }
      const Background background(client_, fault, fault.faulty);
      KEELSON_RETURN_IF_ERROR(Read(faulty));
      for (const auto& [status, count] : background.Statuses()) statuses[status] += count;
    }
    Print(fault.name, alone, sound, faulty, Text(statuses));
    return {};
  }

  Result<> Read(std::vector<double>& times) const {
    KEELSON_ASSIGN_OR_RETURN(const std::vector<double> some, ReadBystander(client_, options_));
    times.insert(times.end(), some.begin(), some.end());
    return {};
  }

  static void Print(const std::string& name, const std::vector<double>& alone,
                    const std::vector<double>& sound, const std::vector<double>& faulty,
                    const std::string& more) {
    fmt::print("{:<56} {:>6.2f} {:>6.2f} {:>6.2f} ms   p50 {:.2f} {:.2f} {:.2f}   {}\n", name,
               Percentile(alone, kP99), Percentile(sound, kP99), Percentile(faulty, kP99),
               Percentile(alone, 0.5), Percentile(sound, 0.5), Percentile(faulty, 0.5), more);
    std::fflush(stdout);
  }

  // The definition goes in the course of one measurement; Secrets with as many watches go in another. No thread waits for
  // the watches.
  Result<> ManyWatches() const {
    const std::string name = fmt::format("a definition with {} objects and {} watches is deleted",
                                         options_.objects, options_.watchers);
    if (!Wanted(name)) return {};
    std::vector<double> alone, built_in, custom;
    for (int turn = 0; turn < kTurns; ++turn) KEELSON_RETURN_IF_ERROR(Read(alone));
    const std::string secrets = "/api/v1/namespaces/watched/secrets";
    KEELSON_RETURN_IF_ERROR(Send({"POST", "/api/v1/namespaces",
                                  "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'watched'}}"}));
    for (int i = 0; i < options_.objects; ++i) {
      KEELSON_RETURN_IF_ERROR(
          Send({"POST", secrets,
                fmt::format("{{'apiVersion':'v1','kind':'Secret','metadata':{{'name':'o{}'}},"
                            "'stringData':{{'a':'{:300}'}}}}",
                            i, 'a')}));
    }
    KEELSON_RETURN_IF_ERROR(DeleteWatched(secrets, {"DELETE", secrets, ""}, built_in));
    KEELSON_RETURN_IF_ERROR(Send({"POST", kDefinitions, FaultDefinition("goners", "Goner")}));
    KEELSON_RETURN_IF_ERROR(AwaitAnswer(FaultCollection("goners")));
    for (int i = 0; i < options_.objects; ++i) {
      KEELSON_RETURN_IF_ERROR(
          Send(FaultObject("goners", "Goner", fmt::format("o{}", i), fmt::format("'a':'{:300}'", 'a'))));
    }
    const SteadyTime begin = SteadyTime::clock::now();
    std::vector<std::unique_ptr<client::ApiStream>> watches;
    KEELSON_RETURN_IF_ERROR(DeleteWatched(
        FaultCollection("goners"), {"DELETE", std::string(kDefinitions) + "/goners." + kFaultGroup, ""},
        custom, &watches));
    for (const auto& watch : watches) KEELSON_RETURN_IF_ERROR(AwaitEnd(*watch));
    Print(name, alone, built_in, custom,
          fmt::format("{:.1f} s until the last watch has ended",
                      std::chrono::duration<double>(SteadyTime::clock::now() - begin).count()));
    return {};
  }

  Result<> DeleteWatched(const std::string& collection, const Call& remove, std::vector<double>& times,
                         std::vector<std::unique_ptr<client::ApiStream>>* kept = nullptr) const {
    std::vector<std::unique_ptr<client::ApiStream>> watches;
    for (int i = 0; i < options_.watchers; ++i) {
      client::ApiRequest request;
      request.target = collection + "?watch=1";
      request.accept = "application/json";
      KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<client::ApiStream> stream, transport_.Open(request, {}));
      watches.push_back(std::move(stream));
    }
    KEELSON_RETURN_IF_ERROR(Send(remove));
    for (int turn = 0; turn < kTurns; ++turn) KEELSON_RETURN_IF_ERROR(Read(times));
    if (kept) *kept = std::move(watches);
    return {};
  }

  // Reads a watch that tells of every object, then that it is deleted, and then ends without an error.
  Result<> AwaitEnd(client::ApiStream& watch) const {
    std::string text;
    for (std::string piece = " "; !piece.empty(); text += piece) {
      KEELSON_ASSIGN_OR_RETURN(piece, watch.Read({}, std::chrono::seconds(60)));
    }
    int deleted = 0;
    constexpr std::string_view kDeleted = R"({"type":"DELETED")";
    for (size_t at = text.find(kDeleted); at != text.npos; at = text.find(kDeleted, at + 1)) ++deleted;
    if (deleted == options_.objects && text.find(R"({"type":"ERROR")") == text.npos) return {};
    return Error(Code::kInternal,
                 fmt::format("a watch has ended after {} of {} deletions: {}", deleted, options_.objects,
                             text.substr(text.size() - std::min<size_t>(text.size(), 300))));
  }

  const LoadClient& client_;
  client::Transport& transport_;
  const FaultOptions options_;
};

}  // namespace

Result<> RunFaults(const LoadClient& client, client::Transport& transport, const FaultOptions& options) {
  return Faults(client, transport, options).Run();
}

}  // namespace keelson::bench
