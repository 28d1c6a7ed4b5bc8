#include "tests/bench/load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "lib/base/file.h"

namespace keelson::bench {

using std::chrono::steady_clock;

namespace {

std::string Field(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, name.size(), name) == 0) return line.substr(name.size());
  }
  return "0";
}

Result<size_t> Do(http::Client& client, const http::ClientRequest& request, std::string* body = nullptr) {
  KEELSON_ASSIGN_OR_RETURN(http::ClientResponse response, client.Do(request, std::chrono::seconds(60)));
  if (response.status / 100 != 2) {
    return Error(Code::kInternal, fmt::format("{} {}: {} {}", request.method, request.target, response.status,
                                              response.body.substr(0, 300)));
  }
  const size_t size = response.body.size();
  if (body) *body = std::move(response.body);
  return size;
}

}  // namespace

std::string Json(std::string_view text) {
  std::string out(text);
  std::replace(out.begin(), out.end(), '\'', '"');
  return out;
}

double Servers::CpuSeconds() const {
  double ticks = 0;
  for (int pid : pids_) {
    Result<std::string> stat = ReadFile(fmt::format("/proc/{}/stat", pid));
    if (!stat) continue;
    unsigned long user = 0, system = 0;
    // Behind the name in parentheses: state is field 3, utime 14.
    std::sscanf(stat->c_str() + stat->rfind(')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                &user, &system);
    ticks += static_cast<double>(user + system);
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double Servers::AnonymousMib() const {
  return pids_.empty()
             ? 0
             : std::atof(Field(fmt::format("/proc/{}/status", pids_[0]), "RssAnon:").c_str()) / 1024;
}

Result<std::unique_ptr<http::Client>> LoadClient::Connect() const {
  http::ClientOptions options;
  options.base_url = config_.server;
  options.tls.ca_pem = config_.ca_pem;
  options.tls.certificate_pem = config_.certificate_pem;
  options.tls.key_pem = config_.key_pem;
  options.http2 = false;
  return http::Client::Create(options);
}

http::ClientRequest LoadClient::Request(std::string method, std::string target, std::string body,
                                        std::string type) const {
  http::ClientRequest request{std::move(method), std::move(target), {}, std::move(body)};
  if (!request.body.empty()) request.headers.Add("Content-Type", std::move(type));
  if (!config_.token.empty()) request.headers.Add("Authorization", "Bearer " + config_.token);
  return request;
}

Result<std::string> LoadClient::Send(std::string method, std::string target, std::string body,
                                     std::string type) const {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<http::Client> client, Connect());
  std::string response;
  KEELSON_ASSIGN_OR_RETURN(
      [[maybe_unused]] size_t size,
      Do(*client, Request(std::move(method), std::move(target), std::move(body), std::move(type)),
         &response));
  return response;
}

Result<Timing> LoadClient::Measure(const std::string& name, int count, int workers,
                                   const std::function<Result<size_t>(int, int)>& one) const {
  std::vector<std::vector<double>> times(workers);
  std::vector<Result<>> results(workers);
  std::atomic<int> next{0};
  std::atomic<size_t> bytes{0};
  double cpu = servers_.CpuSeconds();
  auto begin = steady_clock::now();
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      for (int i; (i = next.fetch_add(1)) < count;) {
        auto start = steady_clock::now();
        Result<size_t> size = one(w, i);
        if (!size) {
          results[w] = size.error();
          return;
        }
        bytes += *size;
        times[w].push_back(std::chrono::duration<double, std::milli>(steady_clock::now() - start).count());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
  cpu = servers_.CpuSeconds() - cpu;
  std::vector<double> all;
  for (const auto& some : times) all.insert(all.end(), some.begin(), some.end());
  for (const Result<>& result : results) KEELSON_RETURN_IF_ERROR(result);
  std::sort(all.begin(), all.end());
  auto at = [&](double p) { return all[std::min(all.size() - 1, static_cast<size_t>(p * all.size()))]; };
  fmt::print("{:<34} {:>6} {:>9.1f}/s p50 {:>8.2f} ms p99 {:>8.2f} ms cpu {:>9.0f} us each {:>11} bytes\n",
             name, count, count / seconds, at(0.5), at(0.99), cpu / count * 1e6, bytes.load() / count);
  std::fflush(stdout);
  return Timing{count / seconds, at(0.5), at(0.99), cpu};
}

Result<Timing> LoadClient::MeasureRequests(const std::string& name, int count, int workers,
                                           const std::function<http::ClientRequest(int i)>& make) const {
  std::vector<std::unique_ptr<http::Client>> clients;
  for (int w = 0; w < workers; ++w) {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<http::Client> client, Connect());
    clients.push_back(std::move(client));
  }
  return Measure(name, count, workers, [&](int w, int i) { return Do(*clients[w], make(i)); });
}

Result<double> LoadClient::Time(const std::string& name, int count, int workers,
                                const std::function<Result<size_t>(int, int)>& one) const {
  KEELSON_ASSIGN_OR_RETURN(const Timing timing, Measure(name, count, workers, one));
  return timing.per_second;
}

Result<double> LoadClient::TimeRequests(const std::string& name, int count, int workers,
                                        const std::function<http::ClientRequest(int i)>& make) const {
  KEELSON_ASSIGN_OR_RETURN(const Timing timing, MeasureRequests(name, count, workers, make));
  return timing.per_second;
}

}  // namespace keelson::bench
