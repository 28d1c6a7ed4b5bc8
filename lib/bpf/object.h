// Loads what clang -target bpf has compiled, from bytes in memory, into the kernel: open, adapt, load. A
// thin layer over libbpf. Not thread safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/bpf/map.h"

struct bpf_object;
struct bpf_program;

namespace keelson::bpf {

// A loaded program. Valid as long as its Object.
class Program {
 public:
  Program() = default;
  explicit Program(const bpf_program* program);
  int fd() const { return fd_; }  // owned by the Object
  const std::string& name() const { return name_; }
  uint32_t attach_type() const { return attach_type_; }

  struct Output {
    uint32_t result = 0;
    std::string packet, context;
  };
  // Runs the program on a packet (or on a context alone) with BPF_PROG_TEST_RUN.
  Result<Output> TestRun(std::string_view packet, std::string_view context = {}) const;

 private:
  int fd_ = -1;
  std::string name_;
  uint32_t attach_type_ = 0;
};

class Object {
 public:
  // `elf` must outlive the object.
  static Result<Object> Open(std::string_view elf, const std::string& name);

  // Sets a map's size. Before Load().
  Result<> SetMaxEntries(const std::string& map, uint32_t entries);
  // Uses an existing map for `map`. Before Load(). kInvalid when its key size, value size or type differs.
  Result<> Reuse(const std::string& map, const Map& existing);
  // Sets a `const volatile` variable. Before Load().
  Result<> SetConstant(const std::string& variable, std::string_view value);

  // When the kernel refuses a program, the error has the last lines of the verifier's log, and log() all of
  // it.
  Result<> Load();
  const std::string& log() const { return log_; }

  // The rest: after Load().
  Result<Map> GetMap(const std::string& name) const;
  Result<Program> GetProgram(const std::string& name) const;
  std::vector<Program> Programs() const;
  std::vector<std::string> MapNames() const;  // without the maps that hold variables

 private:
  struct Closer {
    void operator()(bpf_object* object) const;
  };
  explicit Object(bpf_object* object) : object_(object) {}
  std::unique_ptr<bpf_object, Closer> object_;
  std::string log_;
};

}  // namespace keelson::bpf
