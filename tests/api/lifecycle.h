// What every resource goes through, whatever it is: the server's answer to each step is held against the
// fixture.
#pragma once

#include <string>
#include <vector>

#include "tests/api/api_client.h"
#include "tests/api/fixture.h"

namespace keelson::apitest {

// One fixture, once. Failures are reported through gtest and do not end the run.
class Lifecycle {
 public:
  Lifecycle(ApiClient& client, const Fixture& fixture);
  void Run();

 private:
  // What an object has to look like now.
  struct Expected {
    json::object object;     // without what the server makes of itself
    int64_t generation = 0;  // 0: the kind does not count
  };
  struct Event {
    std::string type;
    json::value object;
  };

  // lifecycle.cc
  bool Prepare();
  bool Create();
  void CreateMore();
  void Collection();
  void Delete();
  void Remove(const std::string& name);
  // lifecycle_reads.cc
  void Reads();
  void OtherVersions(const json::array& versions);
  void Lists();
  void TableRows();
  void Selectors();
  void Replay();
  // lifecycle_writes.cc
  void BadRequests();
  void Steps();
  void Step(const json::object& step, const std::string& where);
  void CheckApplier(const json::object& step, const json::value& now, const std::string& where);
  Reply Send(const json::object& step);
  void Unchanged();
  void Conflicts();
  void Invalid();
  void InvalidCase(const json::object& one, const std::string& where);

  // `got` is the object as `expected` says, and what the server makes of itself has its form.
  void CheckObject(const Expected& expected, const json::value& got, const std::string& where,
                   bool in_list = false);
  void CheckManagers(const json::value& got, const std::string& where);
  void Note(const std::string& type, const json::value& object);
  // The fixture's expectation of an object that is created from `create`.
  Expected ExpectedOf(const json::object& fixture, const json::object& create) const;
  json::object Copy(const std::string& suffix) const;
  // `path` with query parameters.
  std::string Path(const std::string& name = "", const std::string& subresource = "") const;
  json::value Live();

  ApiClient& client_;
  const Fixture& fixture_;
  const api::ResourceInfo& info_;
  std::string ns_, name_;
  std::string first_version_;  // of the collection, before anything was written
  Expected expected_;
  json::value live_;  // the last answer of a write to the object
  std::vector<Event> history_;
};

// Reports differences, one failure for all of them.
void Report(const std::string& where, const std::vector<std::string>& differences);
void ExpectStatus(const Reply& reply, int status, const std::string& where);

}  // namespace keelson::apitest
