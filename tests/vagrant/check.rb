# Reads vagrant/Vagrantfile with a stub of Vagrant's configuration language, where Vagrant itself is not installed.
# usage: check.rb VAGRANTFILE
require "openssl"
require "open3"
require "tmpdir"
require "fileutils"

# Records each call: config.vm.network("private_network", ip: ...) becomes ["network", ["private_network"], {ip: ...}].
class Recorder
  attr_reader :calls, :settings, :machines

  def initialize
    @calls = []
    @settings = {}
    @machines = {}
  end

  def vm = self

  def define(name, **options)
    raise "machine #{name} is defined twice" if @machines.key?(name)
    @machines[name] = machine = Recorder.new
    yield machine
  end

  def provider(_name)
    yield Recorder.new
  end

  KNOWN = %i[network synced_folder provision].freeze
  SET = %i[box= hostname= cpus= memory=].freeze

  def method_missing(name, *arguments, **options)
    return @calls << [name, arguments, options] if KNOWN.include?(name)
    return @settings[name.to_s.chomp("=")] = arguments[0] if SET.include?(name)
    raise "the Vagrantfile uses #{name}, which this stub does not know"
  end

  def respond_to_missing?(name, *) = KNOWN.include?(name) || SET.include?(name)

  def provisions(type) = @calls.select { |name, _, options| name == :provision && options[:type] == type }
end

module Vagrant
  module Errors
    class VagrantError < StandardError; end
  end

  def self.configure(version)
    raise "version #{version}" unless version == "2"
    $config = Recorder.new
    yield $config
  end
end

def check(holds, message)
  abort "FAILED: #{message}" unless holds
end

def read(file, nodes)
  ENV["KEELSON_NODES"] = nodes.to_s
  load file
  $config.machines
end

original = File.expand_path(ARGV[0])
Dir.mktmpdir do |dir|
  # The file writes its secrets beside itself.
  FileUtils.cp_r(File.dirname(original), File.join(dir, "vagrant"))
  FileUtils.rm_rf(File.join(dir, "vagrant", ".vagrant"))
  file = File.join(dir, "vagrant", "Vagrantfile")

  machines = read(file, 3)
  check(machines.keys == %w[control-plane node1 node2 node3], "machines: #{machines.keys}")
  addresses = machines.values.map { |one| one.calls.find { |name,| name == :network }[2][:ip] }
  check(addresses.uniq.size == 4, "addresses: #{addresses}")
  machines.each { |name, one| check(one.settings["hostname"] == name, "host name of #{name}") }

  secrets = File.join(dir, "vagrant", ".vagrant", "keelson")
  check(File.stat(secrets).mode & 0o77 == 0, "others can read #{secrets}")
  ca = OpenSSL::X509::Certificate.new(File.read(File.join(secrets, "ca.crt")))
  check(ca.verify(ca.public_key) && ca.check_private_key(OpenSSL::PKey.read(File.read(File.join(secrets, "ca.key")))), "the CA")
  constraint = ca.extensions.find { |one| one.oid == "basicConstraints" }
  check(constraint.critical? && constraint.value == "CA:TRUE", "the CA's constraints")

  control = machines["control-plane"].provisions("shell").last[2][:args]
  check(control[0] == addresses[0] && control[1] =~ /\A[a-z0-9]{6}\.[a-z0-9]{16}\z/, "arguments of the control plane: #{control}")
  from_openssl, = Open3.capture2("openssl pkey -pubin -outform der | sha256sum", stdin_data: ca.public_key.to_pem)
  machines.each do |name, one|
    scripts = one.provisions("shell").map { |_, _, options| options[:path] }
    scripts.each do |script|
      path = File.join(File.dirname(file), script)
      check(File.exist?(path), "#{script} does not exist")
      check(system("bash", "-n", path), "#{script} is not a shell script")
    end
    next if name == "control-plane"
    server, token, hash = one.provisions("shell").last[2][:args]
    check(server == addresses[0] && token == control[1], "arguments of #{name}")
    check(hash == "sha256:" + from_openssl.split[0], "the CA's hash: #{hash}")
  end

  again = read(file, 3)
  check(again["node1"].provisions("shell").last[2][:args] == machines["node1"].provisions("shell").last[2][:args], "secrets change")
  check(read(file, 0).keys == ["control-plane"], "a control plane alone")
  refused = begin
    read(file, 500)
    false
  rescue Vagrant::Errors::VagrantError
    true
  end
  check(refused, "500 nodes are accepted")
end
puts "passed"
